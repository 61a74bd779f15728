//! A disk that can be filled.

use std::{fs, path::Path, process::Command};

/// A file system of its own, and small. Only root may make one.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// # Panics
    /// If this user may not make one.
    pub fn new(megabytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "windlass-test"]).arg(folder.path());
        assert!(mount.status().is_ok_and(|status| status.success()), "only root may make a file system");
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Something else that takes all the room there is.
    pub fn fill(&self) {
        let mut ballast = fs::File::create(self.path().join("ballast")).unwrap();
        let zeros = vec![0; 64 << 10];
        while std::io::Write::write_all(&mut ballast, &zeros).is_ok() {}
    }

    pub fn make_room(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.path()).status());
    }
}
