//! The frame of every page: where one is, who one is, and whether everything is stopped.

use crate::App;
use crate::auth::Caller;
use crate::problem::{Answer, ProblemDetails};
use axum::response::Html;
use chrono::{DateTime, Utc};
use maud::{DOCTYPE, Markup, html};
use windlass_core::JobId;
use windlass_core::config::Permission;
pub(super) use windlass_html::components::{facts, figure, heads, nothing};
use windlass_store::{Control, EVERYTHING};

/// What every page knows.
pub(super) struct Frame {
    pub(super) caller: Caller,
    pub(super) controls: Vec<Control>,
    pub(super) now: DateTime<Utc>,
    signed_in: bool,
}

/// Which page it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Here {
    Overview,
    Jobs,
    Letters,
    JobTypes,
    Schedules,
    Workers,
}

/// What makes a page ask for itself again.
pub(super) enum Live {
    /// Whatever happens to any job.
    All,
    /// Whatever happens to this one.
    Job(JobId),
    /// Nothing: it shows what is over, or what somebody fills in.
    Still,
}

const PLACES: [(Here, &str, &str); 6] = [
    (Here::Overview, "/", "Overview"),
    (Here::Jobs, "/jobs", "Jobs"),
    (Here::Letters, "/dead-letters", "Dead letters"),
    (Here::JobTypes, "/job-types", "Job types"),
    (Here::Schedules, "/schedules", "Schedules"),
    (Here::Workers, "/workers", "Workers"),
];

impl Frame {
    /// What every page knows, for this caller.
    pub(super) async fn of(app: &App, caller: Caller) -> Answer<Frame> {
        let controls = app.engine.store().controls().await?;
        let signed_in = app.engine.config().auth.is_some();
        Ok(Frame { caller, controls, now: Utc::now(), signed_in })
    }

    /// Whether the caller may do something.
    pub(super) fn may(&self, permission: Permission) -> bool {
        self.caller.may(permission)
    }

    /// Whether the caller may do something with jobs of this type.
    pub(super) fn may_on(&self, permission: Permission, job_type: &str) -> bool {
        self.caller.may_on(permission, job_type)
    }

    /// What is said of a subject.
    pub(super) fn control(&self, subject: &str) -> Option<&Control> {
        self.controls.iter().find(|control| control.subject == subject)
    }

    /// Whether a subject is stopped.
    pub(super) fn is_stopped(&self, subject: &str) -> bool {
        self.control(subject).is_some_and(|control| control.stopped)
    }

    /// A page with this title and content.
    pub(super) fn page(
        &self,
        here: Here,
        title: &str,
        live: Live,
        content: Markup,
    ) -> Html<String> {
        let watched = match live {
            Live::All => Some("all".to_owned()),
            Live::Job(id) => Some(id.to_string()),
            Live::Still => None,
        };
        let body = html! {
            header.top {
                a.brand href="/" { "Windlass" }
                nav aria-label="Main" {
                    @for (place, address, name) in PLACES {
                        a href=(address) aria-current=[(place == here).then_some("page")] { (name) }
                    }
                }
                div.who {
                    span #live role="status" hidden[watched.is_none()] { "Live" }
                    span title="You" { (self.caller.name()) }
                    @if self.signed_in {
                        form method="post" action="/sign-out" { button.quiet { "Sign out" } }
                    }
                }
            }
            main #main data-live=[watched] {
                (self.switch(here))
                (content)
            }
        };
        whole(title, body)
    }

    /// The stop switch. When it is thrown, nobody can look past it, on any page.
    fn switch(&self, here: Here) -> Markup {
        let stopped = self.is_stopped(EVERYTHING);
        let may = self.caller.may_on_all(Permission::Administer);
        html! {
            @if stopped {
                section #switch .switch.stopped role="alert" {
                    p {
                        strong { "Everything is stopped." }
                        " Nothing new is loaded or claimed on any machine. Chunks at work finish."
                    }
                    @if may {
                        form method="post" action="/start" { button.primary { "Start again" } }
                    }
                }
            } @else if here == Here::Overview {
                section #switch .switch.running {
                    p { strong { "Work is on." } " Workers take what is queued." }
                    @if may {
                        details.confirm {
                            summary { "Emergency stop…" }
                            form method="post" action="/stop" {
                                p {
                                    "Nothing new will be loaded or claimed, on any machine, until somebody starts it again."
                                }
                                button.danger { "Stop everything" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A page without a frame: before one is known, or when something failed.
pub(super) fn bare(title: &str, content: Markup) -> Html<String> {
    whole(title, html! { main.bare { a.brand href="/" { "Windlass" } (content) } })
}

/// What went wrong, and what would be right.
pub(super) fn failure(problem: &ProblemDetails) -> Html<String> {
    let content = html! {
        h1 { (problem.title) }
        @if let Some(field) = &problem.field { p { "About " code { (field) } ":" } }
        @if let Some(detail) = &problem.detail { p.problem { (detail) } }
        p { a href="/" { "To the overview" } }
    };
    bare(&problem.title, content)
}

fn whole(title: &str, body: Markup) -> Html<String> {
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
                a.skip href="#main" { "To the content" }
                (body)
            }
        }
    };
    Html(page.into_string())
}

/// The address of a job type's page, whatever its name.
pub(super) fn job_type_page(name: &str) -> String {
    format!("/job-types/{}", segment(name))
}

/// A name as a part of an address.
pub(super) fn segment(name: &str) -> String {
    url::form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}
