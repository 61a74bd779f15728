//! A pgbouncer in front of a cluster, handing out another session for every transaction.

use super::{Cluster, free_port, wait_until};
use std::{
    fs,
    net::TcpStream,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

pub struct Pooler {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Cluster {
    /// So few sessions that transactions of one client keep meeting different ones.
    ///
    /// # Panics
    /// If there is no pgbouncer here.
    pub fn pooler(&self, sessions: usize) -> Pooler {
        let port = free_port();
        let folder = super::fresh_folder(self.user);
        // With `auth_type = any` everybody is whom the first section says.
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\nserver_round_robin = 1\nmin_pool_size = {sessions}\n\
             default_pool_size = {sessions}\nmax_client_conn = 200\nlogfile = {}/log\n",
            self.port,
            folder.display()
        );
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, settings).expect("the temporary folder can be written to");
        // Packaged among the system's programs, which are not on everybody's path.
        let packaged = PathBuf::from("/usr/sbin/pgbouncer");
        let mut command = Command::new(if packaged.exists() { packaged } else { "pgbouncer".into() });
        command.arg(&file).current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(user) = self.user {
            // In place, and not with runuser: a signal must reach the program itself.
            command.uid(number(user, "-u")).gid(number(user, "-g"));
        }
        let child = command.spawn().expect("pgbouncer is needed (apt-get install pgbouncer)");
        wait_until("pgbouncer's start", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Pooler { child, port, folder }
    }
}

fn number(user: &str, which: &str) -> u32 {
    let output = Command::new("id").args([which, user]).output().expect("id can be started");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("id prints a number")
}

impl Pooler {
    /// The same database, through the pooler.
    pub fn through(&self, url: &str) -> String {
        let database = url.rsplit('/').next().unwrap_or_default();
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
