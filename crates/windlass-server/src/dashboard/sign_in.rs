//! Signing in to the dashboard with a token, and signing out.

use super::layout::plain_page;
use super::responses::local_path;
use crate::App;
use crate::auth::{Caller, session};
use crate::extract::Query;
use crate::problem::{ApiError, ApiResult};
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
pub(super) struct SignInQuery {
    /// The path to return to.
    to: Option<String>,
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Query(query): Query<SignInQuery>,
) -> Response {
    let to = local_path(query.to.as_deref().unwrap_or("/"));
    match app.engine.config().auth {
        None => Redirect::to(to).into_response(),
        Some(_) => form(to, None).into_response(),
    }
}

#[derive(Deserialize)]
pub(super) struct SignInForm {
    token: String,
    #[serde(default)]
    to: String,
}

pub(super) async fn sign_in(
    State(app): State<Arc<App>>,
    parts: Parts,
    Form(submitted): Form<SignInForm>,
) -> ApiResult<Response> {
    // Otherwise another site could sign the user in as a different caller.
    if !session::is_same_origin(&parts.headers) {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "the form was submitted by another site"));
    }
    let (token, to) = (submitted.token.trim(), local_path(&submitted.to));
    let rejected = |why| (StatusCode::UNAUTHORIZED, form(to, Some(why))).into_response();
    if token.len() > session::MAX_TOKEN_BYTES {
        return Ok(rejected(
            "The token is too long for a browser session: at most 4,000 characters.",
        ));
    }
    match Caller::sign_in(&parts, &app, token).await {
        Ok(caller) => {
            tracing::info!(by = caller.name(), "signed in");
            let cookie = session::start(token, &parts.headers, caller.seconds_left());
            Ok(([(SET_COOKIE, cookie)], Redirect::to(to)).into_response())
        }
        Err(error) if error.status() == StatusCode::UNAUTHORIZED => Ok(rejected(
            "The token is not valid. It may be mistyped, expired, or from another issuer.",
        )),
        Err(error) => Err(error),
    }
}

pub(super) async fn sign_out(headers: HeaderMap) -> ApiResult<Response> {
    if !session::is_same_origin(&headers) {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "the form was submitted by another site"));
    }
    Ok(([(SET_COOKIE, session::end(&headers))], Redirect::to("/sign-in")).into_response())
}

fn form(to: &str, error: Option<&str>) -> Html<String> {
    let content = html! {
        h1 { "Sign in" }
        p { "Paste an API token. This browser keeps it until it expires." }
        form.stack method="post" action="/sign-in" {
            input type="hidden" name="to" value=(to);
            label for="token" { "Token" }
            input #token type="password" name="token" required autocomplete="off" spellcheck="false" autofocus
                aria-describedby=[error.map(|_| "error")] aria-invalid=[error.map(|_| "true")];
            @if let Some(error) = error { p #error .problem role="alert" { (error) } }
            button.primary { "Sign in" }
        }
    };
    plain_page("Sign in", content)
}
