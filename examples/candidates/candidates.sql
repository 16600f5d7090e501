-- The example's tables, empty; generate.py fills them.
--
-- Candidates are publications that may count for a reporting year, as an application keeps them: a
-- document beside the columns that it looks them up by, and a version that every write checks.
DROP TABLE IF EXISTS search_index, candidates, periods;
DROP FUNCTION IF EXISTS migrate_on_write, index_for_search;

CREATE TABLE candidates (
    identifier     uuid   PRIMARY KEY,
    reporting_year text   NOT NULL,
    institution_id text   NOT NULL,
    status         text   NOT NULL,
    document       jsonb  NOT NULL,
    version        bigint NOT NULL DEFAULT 1
);

-- The candidates of a year are an index look-up, cut into ranges of the key.
CREATE INDEX candidates_year ON candidates (reporting_year, identifier);
CREATE INDEX candidates_status ON candidates (status, identifier);

CREATE TABLE periods (
    year    text   PRIMARY KEY,
    closes  date   NOT NULL,
    version bigint NOT NULL DEFAULT 1
);

-- Every write of a candidate migrates its document to the current format: the old format has one
-- creator, the current one has a list of creators.
CREATE FUNCTION migrate_on_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.document ? 'creator' THEN
        NEW.document := (NEW.document - 'creator')
            || jsonb_build_object('creators', jsonb_build_array(NEW.document -> 'creator'));
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER migrate_on_write BEFORE UPDATE ON candidates
    FOR EACH ROW EXECUTE FUNCTION migrate_on_write();

-- Stands for the search engine, which hears of every write.
CREATE TABLE search_index (
    identifier uuid   PRIMARY KEY,
    title      text,
    version    bigint NOT NULL
);

CREATE FUNCTION index_for_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO search_index
    SELECT identifier, document ->> 'title', version FROM written
    ON CONFLICT (identifier) DO UPDATE SET title = excluded.title, version = excluded.version;
    RETURN NULL;
END $$;

CREATE TRIGGER index_for_search AFTER UPDATE ON candidates
    REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION index_for_search();
