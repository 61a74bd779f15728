//! The bytes of revisions' files: how much they take, and what goes when nobody knows them any more.

use crate::{
    app::App,
    content,
    problem::{Code, Result},
};
use windlass_api::Uuid;
use windlass_core::Record;
use windlass_product::{Products, files, items};

/// Deletes an item, and the bytes of its files.
pub async fn delete_item(app: &App, products: &Products, part: &str) -> Result<()> {
    let contents = async { Ok(files::contents(products, part).await?) };
    let delete = || async move { Ok(items::delete(products, part).await?) };
    remove(app, content::freeing(app, contents, delete).await?).await;
    Ok(())
}

pub async fn remove(app: &App, contents: Vec<Uuid>) {
    for id in contents {
        content::remove(app, id).await;
    }
}

/// Files whose item went while they came in. How many went.
pub async fn sweep(app: &App) -> Result<usize> {
    let mut gone = 0;
    for namespace in &app.options.with_files {
        gone += sweep_namespace(app, &app.products(namespace)).await?;
    }
    Ok(gone)
}

async fn sweep_namespace(app: &App, products: &Products) -> Result<usize> {
    let (mut gone, mut pages) = (0, app.engine.pages(files::FILE.query(products.namespace())));
    while let Some(found) = pages.next().await? {
        for record in &found {
            match sweep_one(app, products, record).await {
                Err(problem) if problem.0.is(Code::StoreFull) => {}
                swept => gone += usize::from(swept?),
            }
        }
    }
    Ok(gone)
}

async fn sweep_one(app: &App, products: &Products, record: &Record) -> Result<bool> {
    let Some(content) = files::stray(products, record).await? else { return Ok(false) };
    // The bytes first: this may be what makes room on a full disk.
    content::remove(app, content).await;
    Ok(files::forget_one(products, record).await?)
}
