-- The application's own tables, on SQLite and PostgreSQL alike.
CREATE TABLE IF NOT EXISTS files (
    id     text    NOT NULL PRIMARY KEY,
    points integer NOT NULL,
    job    text
);
CREATE TABLE IF NOT EXISTS points (
    id          text    NOT NULL PRIMARY KEY,
    file_id     text    NOT NULL REFERENCES files,
    type        text    NOT NULL,
    name        text    NOT NULL,
    line_number integer NOT NULL
);
CREATE TABLE IF NOT EXISTS relationships (
    point   text NOT NULL,
    kind    text NOT NULL,
    name    text NOT NULL,
    file_id text NOT NULL,
    PRIMARY KEY (point, kind, name)
);
