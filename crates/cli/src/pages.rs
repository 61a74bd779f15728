//! Lists that come in pages.

use windlass_api::page::{Page, Paging};
use windlass_sdk::Error;

/// Pages that lists are fetched in.
pub const PAGE: u32 = 500;

/// All of a list.
pub async fn all<T>(read: impl AsyncFn(Paging) -> Result<Page<T>, Error>) -> Result<Vec<T>, Error> {
    some(u32::MAX, read).await
}

/// So many of a list at most.
pub async fn some<T>(limit: u32, read: impl AsyncFn(Paging) -> Result<Page<T>, Error>) -> Result<Vec<T>, Error> {
    let (mut found, mut cursor) = (Vec::new(), None);
    while found.len() < limit as usize {
        let open = limit - found.len() as u32;
        let page = read(Paging { limit: Some(open.min(PAGE)), cursor }).await?;
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}
