/* Makes every sync of a process slower, as an ordinary disk would: preload it and set SLOW_SYNC_US.
 * Built and used by bench/slow-sync; a benchmark's tool, never part of a program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void slow(void) {
    const char *us = getenv("SLOW_SYNC_US");
    usleep(us ? (useconds_t)atoi(us) : 2000);
}

int fsync(int fd) {
    static int (*next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    slow();
    return next(fd);
}

int fdatasync(int fd) {
    static int (*next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    slow();
    return next(fd);
}
