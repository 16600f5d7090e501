//! TLS to databases as docs/security.md describes it: accepted certificates, and the messages of refusals.

use crate::common::{CliSandbox, config, raise, refused};
use windlass_testkit::{Certificates, MariaServer, Options, PostgresServer};

/// Only the test's own login needs no TLS. `carrier` needs a client certificate.
const HBA: &str = "\
host    all windlass 127.0.0.1/32 trust
hostssl all carrier  127.0.0.1/32 cert map=certificate
hostssl all all      127.0.0.1/32 trust
hostssl all all      ::1/128      trust
";

const TABLE: &str = "CREATE TABLE accounts (id bigint PRIMARY KEY, amount bigint NOT NULL, \
                     owner text, version bigint NOT NULL DEFAULT 1); \
                     INSERT INTO accounts (id, amount) VALUES (1, 0), (2, 0), (3, 0);";

/// A database that `clerk` reaches only with TLS. The tests use `url` and append a query.
struct Secured {
    certificates: Certificates,
    /// The URL with the host name in the server's certificate, and the one with its address.
    named: String,
    numbered: String,
    /// Keeps the server running.
    server: Server,
}

enum Server {
    Postgres(PostgresServer),
    Maria(MariaServer),
}

impl Secured {
    async fn postgres() -> Secured {
        let certificates = Certificates::create();
        let hba = certificates.add("pg_hba.conf", HBA);
        let ident = certificates.add("pg_ident.conf", "certificate clerk carrier\n");
        let file = |name: &str| certificates.path(name).display().to_string();
        let settings = [
            ("ssl", "on".to_owned()),
            ("ssl_cert_file", file("server.pem")),
            ("ssl_key_file", file("server.key")),
            ("ssl_ca_file", file("ca.pem")),
            ("hba_file", hba.display().to_string()),
            ("ident_file", ident.display().to_string()),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let server = PostgresServer::start(Options { fsync: false, settings });
        let database = server.database().await;
        database.run(TABLE).await;
        database
            .run("CREATE ROLE clerk SUPERUSER LOGIN; CREATE ROLE carrier SUPERUSER LOGIN")
            .await;
        let (port, name) = (server.addr().port(), database.name());
        let named = format!("postgres://clerk@localhost:{port}/{name}");
        let numbered = format!("postgres://clerk@127.0.0.1:{port}/{name}");
        Secured { certificates, named, numbered, server: Server::Postgres(server) }
    }

    async fn mariadb() -> Secured {
        let certificates = Certificates::create();
        let options = [("ssl-cert", "server.pem"), ("ssl-key", "server.key"), ("ssl-ca", "ca.pem")];
        let options =
            options.map(|(name, file)| format!("--{name}={}", certificates.path(file).display()));
        let server = MariaServer::start_with(&options.each_ref().map(String::as_str));
        let database = server.database().await;
        database.run(TABLE).await;
        database
            .run(
                "CREATE USER clerk REQUIRE SSL; GRANT ALL ON *.* TO clerk; \
                 CREATE USER carrier REQUIRE X509; GRANT ALL ON *.* TO carrier",
            )
            .await;
        let (port, name) = (server.addr().port(), database.name());
        let named = format!("mysql://clerk@localhost:{port}/{name}");
        let numbered = format!("mysql://clerk@127.0.0.1:{port}/{name}");
        Secured { certificates, named, numbered, server: Server::Maria(server) }
    }

    async fn both() -> [Secured; 2] {
        [Secured::postgres().await, Secured::mariadb().await]
    }

    /// A sandbox whose records are at this URL. Each `{file}` in it is replaced by the path of a certificate.
    fn at(&self, url: &str) -> CliSandbox {
        let mut url = url.to_owned();
        for file in ["ca.pem", "other-ca.pem", "client.pem", "client.key"] {
            let path = self.certificates.path(file).display().to_string();
            url = url.replace(&format!("{{{file}}}"), &path);
        }
        CliSandbox::with(&config("sqlite:windlass.db", &url, &raise(2)))
    }

    async fn connects(&self, url: &str) {
        let output = self.at(url).run("run RAISE").await;
        assert_eq!(output.code, Some(0), "{url}: {output:?}");
    }

    async fn is_refused(&self, url: &str, why: &str) {
        for command in ["check", "run RAISE"] {
            refused(&self.at(url).run(command).await, &[why]);
        }
    }

    async fn amounts(&self) -> i64 {
        let sql = "SELECT CAST(sum(amount) AS decimal(9,0)) FROM accounts";
        match &self.server {
            Server::Postgres(server) => {
                server.existing("test_1").one(&format!("SELECT ({sql})::bigint")).await
            }
            Server::Maria(server) => {
                let rows = server.existing("test_1").rows(sql).await;
                rows[0][0].as_deref().unwrap().parse().unwrap()
            }
        }
    }
}

#[tokio::test]
async fn a_certificate_of_the_given_ca_for_this_host_is_accepted() {
    for secured in Secured::both().await {
        let Secured { named, numbered, .. } = &secured;
        for url in [
            format!("{named}?sslmode=verify-full&sslrootcert={{ca.pem}}"),
            format!("{named}?sslmode=verify-ca&sslrootcert={{ca.pem}}"),
            format!("{named}?sslmode=require&sslrootcert={{ca.pem}}"),
            // Neither parameter changes anything.
            format!("{numbered}?sslmode=require"),
            // The server offers TLS.
            numbered.clone(),
        ] {
            secured.connects(&url).await;
        }
        assert_eq!(secured.amounts().await, 5 * 3, "{named}");
    }
}

#[tokio::test]
async fn verify_ca_accepts_another_host_name_on_postgres_and_not_on_mariadb() {
    for secured in Secured::both().await {
        let url = format!("{}?sslmode=verify-ca&sslrootcert={{ca.pem}}", secured.numbered);
        match &secured.server {
            Server::Postgres(_) => secured.connects(&url).await,
            // The MySQL driver cannot verify the chain without the host name.
            Server::Maria(_) => secured.is_refused(&url, "not valid for name").await,
        }
    }
}

#[tokio::test]
async fn a_certificate_of_another_ca_or_for_another_host_is_refused() {
    for secured in Secured::both().await {
        let Secured { named, numbered, .. } = &secured;
        let issuer = "UnknownIssuer";
        let url = format!("{named}?sslmode=verify-full&sslrootcert={{other-ca.pem}}");
        secured.is_refused(&url, issuer).await;
        let url = format!("{named}?sslmode=verify-ca&sslrootcert={{other-ca.pem}}");
        secured.is_refused(&url, issuer).await;
        let url = format!("{named}?sslmode=require&sslrootcert={{other-ca.pem}}");
        secured.is_refused(&url, issuer).await;
        // The certificates that the system trusts.
        secured.is_refused(&format!("{named}?sslmode=verify-full"), issuer).await;
        let url = format!("{numbered}?sslmode=verify-full&sslrootcert={{ca.pem}}");
        secured.is_refused(&url, "not valid for name").await;
        assert_eq!(secured.amounts().await, 0, "{named}");
    }
}

#[tokio::test]
async fn a_server_that_requires_tls_refuses_a_plain_connection() {
    let secured = Secured::postgres().await;
    let url = format!("{}?sslmode=disable", secured.numbered);
    secured.is_refused(&url, "no encryption").await;
    let secured = Secured::mariadb().await;
    let url = format!("{}?sslmode=disable", secured.numbered);
    secured.is_refused(&url, "Access denied for user 'clerk'").await;
}

#[tokio::test]
async fn a_client_certificate_is_sent_to_a_server_that_requires_it() {
    for secured in Secured::both().await {
        let url = secured.numbered.replace("clerk@", "carrier@");
        let shown = "sslmode=require&sslcert={client.pem}&sslkey={client.key}";
        secured.connects(&format!("{url}?{shown}")).await;
        let (why, no_key) = match &secured.server {
            Server::Postgres(_) => ("client certificate", "sslkey"),
            Server::Maria(_) => ("Access denied for user 'carrier'", "No private key"),
        };
        secured.is_refused(&format!("{url}?sslmode=require"), why).await;
        let half = format!("{url}?sslmode=require&sslcert={{client.pem}}");
        secured.is_refused(&half, "need each other").await;
        // A certificate instead of a key.
        let wrong = format!("{url}?sslmode=require&sslcert={{client.pem}}&sslkey={{ca.pem}}");
        secured.is_refused(&wrong, no_key).await;
    }
}

#[tokio::test]
async fn the_store_connection_uses_tls_too() {
    let secured = Secured::postgres().await;
    let at = |query: &str| {
        let ca = secured.certificates.path("ca.pem").display().to_string();
        let other = secured.certificates.path("other-ca.pem").display().to_string();
        let url = format!("{}?{query}", secured.named).replace("{ca}", &ca);
        let url = url.replace("{other}", &other);
        CliSandbox::with(&config(&url, &url, &raise(2)))
    };
    at("sslmode=verify-full&sslrootcert={ca}").run("run RAISE").await.ok();
    assert_eq!(secured.amounts().await, 3);
    let output = at("sslmode=verify-full&sslrootcert={other}").run("jobs").await;
    refused(&output, &["store.url", "UnknownIssuer"]);
    let output = at("sslmode=disable").run("jobs").await;
    refused(&output, &["store.url", "no encryption"]);
}
