/* A disk whose cache a power cut empties. Preloaded into a test's child process: each database file that is synced is copied as
 * it is then to the folder LASTING, so that the folder holds what a power cut leaves at least. With FAIL_SYNC_AFTER=n the
 * syncs after the first n fail, as on a dying disk. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static int copy(int fd, const char *to) {
    static char piece[1 << 16];
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (out < 0) return -1;
    off_t at = 0;
    ssize_t got;
    while ((got = pread(fd, piece, sizeof piece, at)) > 0) {
        if (write(out, piece, (size_t)got) != got) return -1;
        at += got;
    }
    return close(out);
}

/* Dies rather than let a test pass on a copy that was not made. */
static void keep(int fd) {
    char link[64], path[1024], fresh[1200], kept[1200];
    const char *folder = getenv("LASTING");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!folder || length < 0) return;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    if (!name || (strcmp(name, "/windlass.db") && strcmp(name, "/windlass.db-wal"))) return;
    snprintf(fresh, sizeof fresh, "%s/fresh", folder);
    snprintf(kept, sizeof kept, "%s%s", folder, name);
    if (copy(fd, fresh) || rename(fresh, kept)) {
        perror("disk.c");
        abort();
    }
}

static int synced(int fd, const char *call) {
    static long syncs;
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, call);
    const char *limit = getenv("FAIL_SYNC_AFTER");
    pthread_mutex_lock(&one_at_a_time);
    int result = next(fd);
    if (limit && ++syncs > atol(limit)) {
        errno = EIO;
        result = -1;
    }
    if (result == 0) keep(fd);
    int error = errno;
    pthread_mutex_unlock(&one_at_a_time);
    errno = error;
    return result;
}

int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }
