//! `windlass token`: creates a token for development.

use super::{config, request};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use windlass_core::claims::UNRESTRICTED;
use windlass_server::{TokenRequest, make_token};

#[derive(clap::Args)]
#[command(
    after_help = "The token is signed with the secret in [auth]. Use it for development: in \
production only the issuer can create tokens.

Example:
  windlass token --subject ada --role clerk --claim county=Kent,Essex --expires 8h"
)]
pub(super) struct Args {
    /// The name of the user
    #[arg(long, value_name = "NAME")]
    subject: String,
    /// A role of [auth.roles]; may be repeated
    #[arg(long, value_name = "ROLE", required = true)]
    role: Vec<String>,
    /// A claim, with one value or several: --claim county=Kent,Essex
    #[arg(long, value_name = "NAME=A,B")]
    claim: Vec<String>,
    /// How long it is valid: 15m, 8h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    expires: Duration,
}

pub(super) async fn run(args: Args, path: &Path) -> Result<ExitCode> {
    let config = config::config(path)?;
    let auth = config.auth.context("the configuration has no [auth], so the API needs no token")?;
    for role in &args.role {
        let known = windlass_core::config::names(auth.roles.keys());
        auth.roles
            .get(role)
            .with_context(|| format!("--role {role}: unknown role; known roles are {known}"))?;
    }
    let claims = request::pairs(&args.claim, "--claim")?;
    if let Some((name, _)) = claims.iter().find(|(_, values)| is_unrestricted(values)) {
        bail!(
            "--claim {name}=*: a token cannot be unrestricted; only `schedule.claims` and `windlass run \
             --claim` can"
        );
    }
    let claims = claims.into_iter().map(|(name, values)| {
        (name, values.split(',').map(|value| value.trim().to_owned()).collect())
    });
    let request = TokenRequest {
        subject: args.subject,
        roles: args.role,
        claims: claims.collect(),
        expires: args.expires,
    };
    println!("{}", make_token(&auth, &request)?);
    Ok(ExitCode::SUCCESS)
}

fn is_unrestricted(values: &str) -> bool {
    values.split(',').any(|value| value.trim() == UNRESTRICTED)
}
