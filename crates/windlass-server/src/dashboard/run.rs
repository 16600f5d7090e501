//! Runs a job type from its form, as a dry run or for real.

use super::actions::{Fields, body};
use super::form::FormInput;
use super::format::{count, scalar};
use super::job_types;
use super::layout::{LiveUpdates, PageContext, Section, empty_state, job_type_path, table_head};
use super::request_form::{RUN, request};
use crate::App;
use crate::auth::{Caller, Submitter};
use crate::extract::{JobRequest, JsonBody, PathName};
use crate::problem::ApiResult;
use crate::routes::jobs;
use axum::Form;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use std::sync::Arc;
use windlass_core::Request;
use windlass_engine::{DryRun, Sample};

/// Submits the job and opens its page. A refused form is shown again with the reason.
pub(super) async fn run(
    caller: Submitter,
    app: State<Arc<App>>,
    PathName(name): PathName,
    Form(fields): Fields,
) -> ApiResult<Response> {
    app.check_job_type(&caller.0, &name)?;
    let viewer = caller.0.clone();
    let submit = async {
        let JsonBody(request) = body(request(&name, &fields)?)?;
        let submitted = jobs::submit(caller, State(app.0.clone()), JobRequest(request)).await?;
        let location = submitted.headers().get(LOCATION).and_then(|path| path.to_str().ok());
        let path = location.and_then(|path| path.strip_prefix("/api/v1")).unwrap_or("/jobs");
        ApiResult::Ok(Redirect::to(path))
    };
    match submit.await {
        Ok(to) => Ok(to.into_response()),
        Err(error) => {
            job_types::page(&app, viewer, &name, &FormInput::refused(RUN, fields, error)?).await
        }
    }
}

/// Shows what the job would do. A refused form is shown again with the reason.
pub(super) async fn dry_run(
    Submitter(caller): Submitter,
    State(app): State<Arc<App>>,
    PathName(name): PathName,
    Form(fields): Fields,
) -> ApiResult<Response> {
    app.check_job_type(&caller, &name)?;
    match try_out(&app, &caller, &name, &fields).await {
        Ok(result) => Ok(dry_run_page(&app, caller, &name, &fields, &result).await?),
        Err(error) => {
            job_types::page(&app, caller, &name, &FormInput::refused(RUN, fields, error)?).await
        }
    }
}

async fn try_out(
    app: &App,
    caller: &Caller,
    name: &str,
    fields: &[(String, String)],
) -> ApiResult<DryRun> {
    let JsonBody(mut request) = body::<Request>(request(name, fields)?)?;
    jobs::check_request(app, caller, &mut request).await?;
    Ok(app.engine.dry_run(request, caller.identity()).await?)
}

async fn dry_run_page(
    app: &App,
    caller: Caller,
    name: &str,
    fields: &[(String, String)],
    result: &DryRun,
) -> ApiResult<Response> {
    let page = PageContext::load(app, caller).await?;
    let path = job_type_path(name);
    let content = html! {
        h1 { "Dry run of " a href=(path) { (name) } }
        p {
            "The job would process " strong { (count(result.records, "record", "records")) }
            ". Nothing was changed. A sample before and after:"
        }
        @if result.sample.is_empty() { (empty_state("No matching records.")) }
        @for sample in &result.sample { (comparison(sample)) }
        form.actions method="post" action=(path + "/run") {
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            button.primary { "Run now" }
        }
    };
    let page = page.render(Section::JobTypes, "Dry run", LiveUpdates::Off, content);
    Ok(page.into_response())
}

/// A record before and after, with the differences highlighted.
fn comparison(sample: &Sample) -> Markup {
    let fields = sample.before.as_object().into_iter().flatten();
    let deleted = sample.after.is_null();
    html! {
        section.detail {
            h2 { (scalar(&sample.key)) " " span.badge { (sample.outcome) } }
            div.scroll {
                table.record {
                    (table_head(&["Field", "Before", "After"]))
                    tbody {
                        @for (name, before) in fields {
                            @let after = sample.after.get(name);
                            tr.changed[after != Some(before)] {
                                th scope="row" { (name) }
                                td.text { (scalar(before)) }
                                td.text {
                                    @if deleted {
                                        "deleted"
                                    } @else { (after.map(scalar).unwrap_or_default()) }
                                }
                            }
                        }
                    }
                }
            }
            @let inserts = serde_json::to_string_pretty(&sample.inserts);
            @let emits = serde_json::to_string_pretty(&sample.emits);
            @for (title, made) in [("Inserts", inserts), ("Emits", emits)] {
                @if let Ok(made) = made {
                    @if made != "[]" { details { summary { (title) } pre { (made) } } }
                }
            }
        }
    }
}
