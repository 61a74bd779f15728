//! Digests of files.

use sha2::{Digest, Sha256};
use std::{io, path::Path};
use tokio::{fs::File, io::AsyncReadExt};

/// A file's size and its SHA-256, in hexadecimal.
pub async fn digest(file: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut hash, mut size) = (File::open(file).await?, Sha256::new(), 0);
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = file.read(&mut buffer).await?;
        if count == 0 {
            return Ok((size, windlass_sdk::api::hex(&hash.finalize())));
        }
        size += count as u64;
        hash.update(&buffer[..count]);
    }
}
