//! Signing in with a token, and out.

use super::layout::bare;
use super::same_origin::place;
use crate::App;
use crate::auth::{Caller, session};
use crate::extract::Query;
use crate::problem::{Answer, Failure};
use axum::Form;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::html;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
pub(super) struct Wanted {
    /// Where to go then.
    to: Option<String>,
}

pub(super) async fn show(State(app): State<Arc<App>>, Query(wanted): Query<Wanted>) -> Response {
    let to = place(wanted.to.as_deref().unwrap_or("/"));
    match app.engine.config().auth {
        None => Redirect::to(to).into_response(),
        Some(_) => form(to, None).into_response(),
    }
}

#[derive(Deserialize)]
pub(super) struct Entering {
    token: String,
    #[serde(default)]
    to: String,
}

pub(super) async fn enter(
    State(app): State<Arc<App>>,
    parts: Parts,
    Form(entering): Form<Entering>,
) -> Answer<Response> {
    // Somebody else's page could sign one in as somebody else.
    if !session::is_from_here(&parts.headers) {
        return Err(Failure::new(StatusCode::FORBIDDEN, "the form was sent by another site"));
    }
    let (token, to) = (entering.token.trim(), place(&entering.to));
    let refused = |why| (StatusCode::UNAUTHORIZED, form(to, Some(why))).into_response();
    if token.len() > session::LONGEST {
        return Ok(refused(
            "The token is longer than 4,000 characters, which browsers do not keep.",
        ));
    }
    match Caller::signing_in(&parts, &app, token).await {
        Ok(caller) => {
            tracing::info!(by = caller.name(), "signed in");
            let cookie = session::begin(token, &parts.headers, caller.seconds_left());
            Ok(([(SET_COOKIE, cookie)], Redirect::to(to)).into_response())
        }
        Err(failure) if failure.status() == StatusCode::UNAUTHORIZED => Ok(refused(
            "That token is not good here: it may be mistyped, expired, or of another issuer.",
        )),
        Err(failure) => Err(failure),
    }
}

pub(super) async fn leave(headers: HeaderMap) -> Answer<Response> {
    if !session::is_from_here(&headers) {
        return Err(Failure::new(StatusCode::FORBIDDEN, "the form was sent by another site"));
    }
    Ok(([(SET_COOKIE, session::end(&headers))], Redirect::to("/sign-in")).into_response())
}

fn form(to: &str, wrong: Option<&str>) -> Html<String> {
    let content = html! {
        h1 { "Sign in" }
        p { "Paste the token that you use for the API. It stays in this browser until it expires." }
        form.stack method="post" action="/sign-in" {
            input type="hidden" name="to" value=(to);
            label for="token" { "Token" }
            input #token type="password" name="token" required autocomplete="off" spellcheck="false" autofocus
                aria-describedby=[wrong.map(|_| "wrong")] aria-invalid=[wrong.map(|_| "true")];
            @if let Some(wrong) = wrong { p #wrong .problem role="alert" { (wrong) } }
            button.primary { "Sign in" }
        }
    };
    bare("Sign in", content)
}
