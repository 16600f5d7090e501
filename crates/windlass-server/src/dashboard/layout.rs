//! The layout of all pages: navigation, the caller, and the emergency stop.

use crate::App;
use crate::auth::Caller;
use crate::problem::{ApiResult, ProblemDetails};
use axum::response::Html;
use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, html};
use windlass_core::JobId;
use windlass_core::config::Permission;
pub(super) use windlass_html::components::{empty_state, facts, figure, table_head};
use windlass_store::{Control, EVERYTHING};

/// The data that every page needs.
pub(super) struct PageContext {
    pub(super) caller: Caller,
    pub(super) controls: Vec<Control>,
    pub(super) now: DateTime<Utc>,
    signed_in: bool,
}

/// An entry of the navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Jobs,
    DeadLetters,
    Alerts,
    JobTypes,
    Schedules,
    Workers,
}

/// The events after which a page reloads its content.
pub(super) enum LiveUpdates {
    /// Changes of any job.
    AllJobs,
    /// Changes of one job.
    Job(JobId),
    /// None: the page shows a fixed result or a form.
    Off,
}

const SECTIONS: [(Section, &str, &str); 7] = [
    (Section::Overview, "/", "Overview"),
    (Section::Jobs, "/jobs", "Jobs"),
    (Section::DeadLetters, "/dead-letters", "Dead letters"),
    (Section::Alerts, "/alerts", "Alerts"),
    (Section::JobTypes, "/job-types", "Job types"),
    (Section::Schedules, "/schedules", "Schedules"),
    (Section::Workers, "/workers", "Workers"),
];

impl PageContext {
    /// Loads the data for this caller.
    pub(super) async fn load(app: &App, caller: Caller) -> ApiResult<PageContext> {
        let controls = app.engine.store().controls().await?;
        let signed_in = app.engine.config().auth.is_some();
        Ok(PageContext { caller, controls, now: Utc::now(), signed_in })
    }

    /// Whether a role of the caller grants this permission for any job type.
    pub(super) fn may(&self, permission: Permission) -> bool {
        self.caller.may(permission)
    }

    /// Whether a role of the caller grants this permission for this job type.
    pub(super) fn may_on(&self, permission: Permission, job_type: &str) -> bool {
        self.caller.may_on(permission, job_type)
    }

    /// The controls of a subject.
    pub(super) fn control(&self, subject: &str) -> Option<&Control> {
        self.controls.iter().find(|control| control.subject == subject)
    }

    /// Whether a subject is stopped.
    pub(super) fn is_stopped(&self, subject: &str) -> bool {
        self.control(subject).is_some_and(|control| control.stopped)
    }

    /// Renders a page with this title and content.
    pub(super) fn render(
        &self,
        section: Section,
        title: &str,
        live: LiveUpdates,
        content: Markup,
    ) -> Html<String> {
        let watched = match live {
            LiveUpdates::AllJobs => Some("all".to_owned()),
            LiveUpdates::Job(id) => Some(id.to_string()),
            LiveUpdates::Off => None,
        };
        let body = html! {
            header.top {
                a.brand href="/" { "Windlass" }
                nav aria-label="Main" {
                    @for (entry, path, name) in SECTIONS {
                        a href=(path) aria-current=[(entry == section).then_some("page")] { (name) }
                    }
                }
                div.who {
                    span #live role="status" hidden[watched.is_none()] { "Live" }
                    span title="Signed in as" { (self.caller.name()) }
                    @if self.signed_in {
                        form method="post" action="/sign-out" { button.quiet { "Sign out" } }
                    }
                }
            }
            main #main data-live=[watched] {
                (self.stop_banner(section))
                (content)
            }
        };
        document(title, body)
    }

    /// The emergency stop on the overview. While processing is stopped, every page shows it.
    fn stop_banner(&self, section: Section) -> Markup {
        let stopped = self.is_stopped(EVERYTHING);
        let may = self.caller.may_on_all(Permission::Administer);
        html! {
            @if stopped {
                section #switch .switch.stopped role="alert" {
                    p {
                        strong { "Processing is stopped." }
                        " No new work is planned or started on any machine. Running chunks stop after their current commit."
                    }
                    @if may {
                        form method="post" action="/start" { button.primary { "Start processing" } }
                    }
                }
            } @else if section == Section::Overview {
                section #switch .switch.running {
                    p { strong { "Processing is enabled." } }
                    @if may {
                        details.confirm {
                            summary { "Emergency stop…" }
                            form method="post" action="/stop" {
                                p {
                                    "No new work will be planned or started on any machine until processing is started again. Running chunks stop after their current commit."
                                }
                                button.danger { "Stop processing" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A page without navigation: before signing in, or for an error.
pub(super) fn plain_page(title: &str, content: Markup) -> Html<String> {
    document(title, html! { main.bare { a.brand href="/" { "Windlass" } (content) } })
}

/// An error as a page.
pub(super) fn error_page(problem: &ProblemDetails) -> Html<String> {
    let content = html! {
        h1 { (problem.title) }
        @if let Some(field) = &problem.field { p { "Field " code { (field) } ":" } }
        @if let Some(detail) = &problem.detail { p.problem { (detail) } }
        p { a href="/" { "Go to the overview" } }
    };
    plain_page(&problem.title, content)
}

fn document(title: &str, body: Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Windlass" }
                link rel="stylesheet" href=(concat!("/assets/style.css?v=", env!("CARGO_PKG_VERSION")));
                link rel="icon" href="/assets/icon.svg";
                script src=(concat!("/assets/live.js?v=", env!("CARGO_PKG_VERSION"))) defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (body)
            }
        }
    };
    Html(page.into_string())
}

/// The path of a job type's page. The name may have any characters.
pub(super) fn job_type_path(name: &str) -> String {
    format!("/job-types/{}", path_segment(name))
}

/// A name, encoded as a segment of a path.
pub(super) fn path_segment(name: &str) -> String {
    url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}
