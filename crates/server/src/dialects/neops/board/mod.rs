//! The blackboard: workers poll it for jobs and push their results to it.

pub mod facets;
pub mod list;
mod log;
pub mod page;
mod poll;
pub mod result;
pub mod show;

use super::Own;
use crate::{
    dialect::Mount,
    route::{Access, Route},
};

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    let most = on.0.settings.result_max;
    vec![
        on.post("/blackboard/job", Access::Worker, poll::poll).says("Claim jobs"),
        on.post("/blackboard/job/result", Access::Worker, result::push).says("Report a job's result").body_max(most),
        on.post("/blackboard/job/log", Access::Worker, log::append).says("Add to a job's log").body_max(most),
        on.get("/blackboard/jobs", Access::Viewer, list::all).says("Jobs"),
        on.get("/blackboard/jobs/active", Access::Viewer, list::active).says("Jobs that have no result yet"),
        on.get("/blackboard/jobs/page", Access::Viewer, page::page).says("A page of jobs"),
        on.get("/blackboard/jobs/{job_id}/result", Access::Viewer, result::get).says("A job's result"),
    ]
}
