//! What the roles of PostgreSQL can do with the outbox.

use crate::harness::Db;
use crate::outboxes::{prepared, rows};

/// The application may only call the function.
#[tokio::test]
async fn an_application_needs_no_privilege_on_the_table() {
    let db = Db::postgres().await;
    prepared(&db).await;
    let role = format!("app_{}", uuid::Uuid::now_v7().simple());
    db.run(&format!("CREATE ROLE {role}")).await;
    let client = db.database().client().await;
    let call = "SELECT windlass_enqueue('J', '{}')";
    client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
    let refused = |error: tokio_postgres::Error| error.as_db_error().unwrap().message().to_owned();
    let message = refused(client.batch_execute(call).await.unwrap_err());
    assert!(message.contains("permission denied for function"), "{message}");
    db.run(&format!("GRANT EXECUTE ON FUNCTION windlass_enqueue(text, jsonb) TO {role}")).await;
    client.batch_execute(call).await.unwrap();
    // A table of the caller does not take precedence.
    client
        .batch_execute("CREATE TEMP TABLE windlass_outbox (id uuid, job_type text, request jsonb)")
        .await
        .unwrap();
    client.batch_execute(call).await.unwrap();
    client.batch_execute("DROP TABLE pg_temp.windlass_outbox").await.unwrap();
    assert_eq!(rows(&db).await, 2);
    for sql in ["SELECT * FROM windlass_outbox", "DELETE FROM windlass_outbox"] {
        let message = refused(client.batch_execute(sql).await.unwrap_err());
        assert!(message.contains("permission denied for table"), "{sql}: {message}");
    }
    db.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

/// A role with CREATE on a schema adds operators, functions and a table. None of them runs with the privileges of the
/// function's owner.
#[tokio::test]
async fn objects_of_other_roles_are_not_used_by_windlass_enqueue() {
    let db = Db::postgres().await;
    let mallory = format!("mallory_{}", uuid::Uuid::now_v7().simple());
    db.run(&format!("CREATE ROLE {mallory}; GRANT CREATE ON SCHEMA public TO {mallory}")).await;
    prepared(&db).await;
    db.run(&format!("GRANT EXECUTE ON FUNCTION windlass_enqueue(text, jsonb) TO {mallory}")).await;
    let attacker = db.database().client().await;
    attacker.batch_execute(&format!("SET ROLE {mallory}")).await.unwrap();
    attacker
        .batch_execute(
            "CREATE TABLE public.ran (by_user text);
             GRANT ALL ON public.ran TO PUBLIC;
             CREATE FUNCTION public.note() RETURNS boolean LANGUAGE sql AS
                 $$ INSERT INTO public.ran VALUES (current_user); SELECT true $$;",
        )
        .await
        .unwrap();
    // Better matches for the function's calls than those of pg_catalog.
    let planted = [
        (
            "operator <> (text, unknown)",
            "CREATE FUNCTION public.ne(text, varchar) RETURNS boolean LANGUAGE sql AS $$ SELECT public.note() $$; CREATE OPERATOR public.<> (LEFTARG = text, RIGHTARG = varchar, FUNCTION = public.ne)",
        ),
        (
            "operator + (bigint, integer)",
            "CREATE FUNCTION public.plus(bigint, integer) RETURNS bigint LANGUAGE sql AS $$ SELECT 1::bigint WHERE public.note() $$; CREATE OPERATOR public.+ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = public.plus)",
        ),
        (
            "operator || (text, bigint)",
            "CREATE FUNCTION public.cat(text, bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'x' WHERE public.note() $$; CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = public.cat)",
        ),
        (
            "operator * (numeric, integer)",
            "CREATE FUNCTION public.times(numeric, integer) RETURNS numeric LANGUAGE sql AS $$ SELECT 1::numeric WHERE public.note() $$; CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.times)",
        ),
        (
            "operator ? (jsonb, varchar)",
            "CREATE FUNCTION public.has(jsonb, varchar) RETURNS boolean LANGUAGE sql AS $$ SELECT public.note() $$; CREATE OPERATOR public.? (LEFTARG = jsonb, RIGHTARG = varchar, FUNCTION = public.has)",
        ),
        (
            "function lpad(text, integer, varchar)",
            "CREATE FUNCTION public.lpad(text, integer, varchar) RETURNS text LANGUAGE sql AS $$ SELECT 'x' WHERE public.note() $$",
        ),
        (
            "function to_hex(numeric)",
            "CREATE FUNCTION public.to_hex(numeric) RETURNS text LANGUAGE sql AS $$ SELECT 'x' WHERE public.note() $$",
        ),
        (
            "function format(text, bigint, bigint)",
            "CREATE FUNCTION public.format(text, bigint, bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'x' WHERE public.note() $$",
        ),
        (
            "function octet_length(varchar)",
            "CREATE FUNCTION public.octet_length(varchar) RETURNS integer LANGUAGE sql AS $$ SELECT 1 WHERE public.note() $$",
        ),
    ];
    for (what, sql) in &planted {
        attacker.batch_execute(sql).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    }
    attacker.batch_execute("SET search_path = public, pg_catalog").await.unwrap();
    for request in ["{}", r#"{"items": [{"id": 1}]}"#] {
        let call = format!("SELECT public.windlass_enqueue('J', '{request}')");
        attacker.batch_execute(&call).await.unwrap();
    }
    for request in ["[]", r#"{"items": [1]}"#, r#"{"jobType": "K"}"#] {
        let call = format!("SELECT public.windlass_enqueue('J', '{request}')");
        attacker.batch_execute(&call).await.unwrap_err();
    }
    assert_eq!(db.number("SELECT count(*) FROM public.ran").await, 0);
    assert_eq!(rows(&db).await, 2);
    db.run(&format!("DROP OWNED BY {mallory}; DROP ROLE {mallory}")).await;
}

/// A trigger of a table that another role created before would run with the privileges of the function's owner.
#[tokio::test]
async fn a_table_created_by_another_role_is_not_used() {
    let db = Db::postgres().await;
    let mallory = format!("mallory_{}", uuid::Uuid::now_v7().simple());
    db.run(&format!("CREATE ROLE {mallory}; GRANT CREATE ON SCHEMA public TO {mallory}")).await;
    let outbox = "CREATE TABLE windlass_outbox (id uuid, job_type text, request jsonb, created_at timestamptz, \
                  attempts integer, error text, next_at timestamptz)";
    let types = "CREATE TABLE windlass_outbox_types (job_type text, list text, unit text)";
    for (table, create) in [("windlass_outbox", outbox), ("windlass_outbox_types", types)] {
        db.run(&format!("SET ROLE {mallory}; {create}; RESET ROLE")).await;
        let error = db.data.outbox().prepare(&[]).await.unwrap_err().to_string();
        assert!(error.contains(&format!("{table} exists and belongs to another role")), "{error}");
        db.run(&format!("DROP TABLE {table}")).await;
    }
    db.run(&format!("DROP OWNED BY {mallory}; DROP ROLE {mallory}")).await;
}
