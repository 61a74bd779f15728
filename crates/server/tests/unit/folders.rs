use std::{fs, os::unix::fs::symlink, path::Path, process::Command};
use windlass_server::folders::read;

fn refusal(path: &Path, bytes_max: usize) -> String {
    read(path, bytes_max).expect_err("it must not be read").to_string()
}

/// Nothing is read of a file that says it is too large; of one that says nothing true about its size, no more than allowed.
#[test]
fn a_file_is_read_as_far_as_its_limit_whatever_size_it_claims() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, "12345").unwrap();
    assert_eq!(read(&file, 5).unwrap(), "12345");
    assert!(refusal(&file, 4).contains("larger than 4 bytes"));
    fs::File::create(&file).unwrap().set_len(8 << 40).unwrap();
    assert!(refusal(&file, 1 << 20).contains("larger than 1048576 bytes"));
    // The system makes this one up while it is read, and says that it is empty: as one that grows meanwhile.
    let grows = Path::new("/proc/self/status");
    assert_eq!(fs::metadata(grows).unwrap().len(), 0);
    assert!(refusal(grows, 10).contains("larger than 10 bytes"));
    fs::write(&file, [0xff, 0xfe]).unwrap();
    assert!(refusal(&file, 10).contains("not valid UTF-8"));
}

#[test]
fn pipes_and_devices_are_neither_read_nor_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, link, device) =
        (folder.path().join("p.yaml"), folder.path().join("l.yaml"), folder.path().join("z.yaml"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink(&pipe, &link).unwrap();
    symlink("/dev/zero", &device).unwrap();
    for path in [&*pipe, &link, &device, folder.path()] {
        assert!(refusal(path, 10).contains("not a regular file"), "{}", path.display());
    }
    let (file, link) = (folder.path().join("f.yaml"), folder.path().join("k.yaml"));
    fs::write(&file, "1").unwrap();
    symlink(&file, &link).unwrap();
    assert_eq!(read(&link, 10).unwrap(), "1", "as a mounted configuration is");
}
