//! Items, bills of material, projects and graphs of the client's namespace: one method per call.

use crate::{
    Client, Error,
    client::{TIMEOUT, escape},
};
use reqwest::{Method, RequestBuilder};
use serde::{Serialize, de::DeserializeOwned};
use windlass_api::{
    graph::{AskCone, AskDirty, AskGraph, Graph, MarkDirty, PutGraph, SyncedGraph},
    item::{
        BomDepth, BomRow, CreateItem, CreateProject, CreateRevision, Item, Leaf, ListItems, Project, PutBomRow,
        Revision, UpdateItem,
    },
    page::{Page, Paging},
};

fn at(part: &str, rest: &str) -> String {
    format!("/api/v1/items/{}{rest}", escape(part))
}

fn row(parent: &str, child: &str) -> String {
    at(parent, &format!("/bom/rows/{}", escape(child)))
}

impl Client {
    async fn read<T: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<T, Error> {
        self.read_json(self.request(Method::GET, path).query(query).timeout(TIMEOUT)).await
    }

    fn write(&self, method: Method, path: &str, body: &impl Serialize) -> RequestBuilder {
        self.request(method, path).json(body).timeout(TIMEOUT)
    }

    pub async fn items(&self, query: &ListItems) -> Result<Page<Item>, Error> {
        self.read("/api/v1/items", query).await
    }
    pub async fn item(&self, part: &str) -> Result<Item, Error> {
        self.read(&at(part, ""), &()).await
    }
    pub async fn create_item(&self, item: &CreateItem) -> Result<Item, Error> {
        self.read_json(self.write(Method::POST, "/api/v1/items", item)).await
    }
    pub async fn update_item(&self, part: &str, change: &UpdateItem) -> Result<Item, Error> {
        self.read_json(self.write(Method::PATCH, &at(part, ""), change)).await
    }
    pub async fn delete_item(&self, part: &str) -> Result<(), Error> {
        self.done(self.request(Method::DELETE, &at(part, ""))).await
    }
    /// Newest first.
    pub async fn revisions(&self, part: &str, paging: &Paging) -> Result<Page<Revision>, Error> {
        self.read(&at(part, "/revisions"), paging).await
    }
    pub async fn revision(&self, part: &str, revision: u32) -> Result<Revision, Error> {
        self.read(&at(part, &format!("/revisions/{revision}")), &()).await
    }
    pub async fn create_revision(&self, part: &str, revision: &CreateRevision) -> Result<Revision, Error> {
        self.read_json(self.write(Method::POST, &at(part, "/revisions"), revision)).await
    }

    /// What it contains directly.
    pub async fn bom(&self, part: &str, paging: &Paging) -> Result<Page<BomRow>, Error> {
        self.read(&at(part, "/bom"), paging).await
    }
    pub async fn bom_levels(&self, part: &str, depth: &BomDepth) -> Result<Page<BomRow>, Error> {
        self.read(&at(part, "/bom/levels"), depth).await
    }
    pub async fn bom_leaves(&self, part: &str) -> Result<Page<Leaf>, Error> {
        self.read(&at(part, "/bom/leaves"), &()).await
    }
    pub async fn where_used(&self, part: &str, paging: &Paging) -> Result<Page<BomRow>, Error> {
        self.read(&at(part, "/where-used"), paging).await
    }
    pub async fn put_bom_row(&self, parent: &str, child: &str, body: &PutBomRow) -> Result<BomRow, Error> {
        self.read_json(self.write(Method::PUT, &row(parent, child), body)).await
    }

    pub async fn projects(&self, paging: &Paging) -> Result<Page<Project>, Error> {
        self.read("/api/v1/projects", paging).await
    }
    pub async fn create_project(&self, project: &CreateProject) -> Result<Project, Error> {
        self.read_json(self.write(Method::POST, "/api/v1/projects", project)).await
    }

    pub async fn graph(&self, part: &str, query: &AskGraph) -> Result<Graph, Error> {
        self.read(&at(part, "/graph"), query).await
    }
    pub async fn cone(&self, part: &str, query: &AskCone) -> Result<Graph, Error> {
        self.read(&at(part, "/graph/cone"), query).await
    }
    pub async fn dirty(&self, part: &str, query: &AskDirty) -> Result<Graph, Error> {
        self.read(&at(part, "/graph/dirty"), query).await
    }
    pub async fn put_graph(&self, part: &str, graph: &PutGraph) -> Result<SyncedGraph, Error> {
        self.read_json(self.write(Method::PUT, &at(part, "/graph"), graph)).await
    }
    pub async fn mark_dirty(&self, part: &str, node: &str) -> Result<SyncedGraph, Error> {
        let body = MarkDirty { node: node.to_owned() };
        self.read_json(self.write(Method::POST, &at(part, "/graph/dirty"), &body)).await
    }
}
