-- The user's data. Every effect on an item appends the tag of its request to `marks`, so that effects can be counted,
-- and a write that undoes another one is seen.
CREATE TABLE items (
    id       INTEGER PRIMARY KEY,
    grp      INTEGER NOT NULL,
    bad      INTEGER NOT NULL,
    marks    TEXT NOT NULL DEFAULT '',
    version  INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE log (tag TEXT NOT NULL, item INTEGER NOT NULL);
CREATE TABLE totals (tag TEXT NOT NULL, grp INTEGER NOT NULL, n INTEGER NOT NULL);

-- What has happened, by the triggers below.
CREATE TABLE sim_effects (item INTEGER NOT NULL, tag TEXT NOT NULL);
CREATE INDEX sim_effects_item ON sim_effects (item, tag);
CREATE TABLE sim_loads (tag TEXT NOT NULL, grp INTEGER NOT NULL);
CREATE TABLE sim_commits (job TEXT NOT NULL, chunk INTEGER NOT NULL, epoch INTEGER NOT NULL);
CREATE TABLE sim_violations (what TEXT NOT NULL);
-- Whether bad items are accepted now.
CREATE TABLE sim_settings (repaired INTEGER NOT NULL);
INSERT INTO sim_settings VALUES (0);

CREATE TRIGGER sim_bad BEFORE UPDATE OF marks ON items
WHEN new.bad AND new.marks <> old.marks AND NOT (SELECT repaired FROM sim_settings)
BEGIN
    SELECT RAISE(ABORT, 'this item is bad');
END;

CREATE TRIGGER sim_effect AFTER UPDATE OF marks ON items WHEN new.marks <> old.marks
BEGIN
    INSERT INTO sim_violations
    SELECT 'the write of ' || new.marks || ' to item ' || new.id || ' overwrote ' || old.marks
    WHERE substr(new.marks, 1, length(old.marks)) <> old.marks;
    INSERT INTO sim_violations
    SELECT 'the effect of ' || substr(new.marks, length(old.marks) + 1) || ' on item ' || new.id || ' happened twice'
    WHERE EXISTS (
        SELECT 1 FROM sim_effects WHERE item = new.id AND tag = substr(new.marks, length(old.marks) + 1)
    );
    INSERT INTO sim_effects VALUES (new.id, substr(new.marks, length(old.marks) + 1));
END;

CREATE TRIGGER sim_log BEFORE INSERT ON log
BEGIN
    INSERT INTO sim_violations
    SELECT 'the insert of ' || new.tag || ' for item ' || new.item || ' happened twice'
    WHERE EXISTS (SELECT 1 FROM log WHERE tag = new.tag AND item = new.item);
END;

CREATE TRIGGER sim_load AFTER INSERT ON totals
BEGIN
    INSERT INTO sim_violations
    SELECT 'the load of ' || new.tag || ' happened twice'
    WHERE EXISTS (SELECT 1 FROM sim_loads WHERE tag = new.tag AND grp = new.grp);
    INSERT INTO sim_loads VALUES (new.tag, new.grp);
END;
