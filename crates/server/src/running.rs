//! What goes on in the background of a server, its dialects' own among it.

use crate::folders::Watch;
use tokio::task::JoinHandle;

/// What goes on in the background. Ends with this.
#[derive(Default)]
pub struct Running {
    pub tasks: Vec<JoinHandle<()>>,
    pub watches: Vec<Watch>,
}

impl Running {
    pub fn join(&mut self, mut other: Running) {
        self.tasks.append(&mut other.tasks);
        self.watches.append(&mut other.watches);
    }

    pub fn watch(&mut self, watch: notify::Result<Watch>) {
        match watch {
            Ok(watch) => self.watches.push(watch),
            Err(error) => tracing::warn!(%error, "a folder is not watched"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
