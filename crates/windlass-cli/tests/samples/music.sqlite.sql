-- A music shop as samples for SQLite have it: CamelCase names, declared lengths that SQLite ignores, a composite key, a
-- view, a generated column, dates as text. One table has a version column, the others have none.
CREATE TABLE [Artist] ([ArtistId] INTEGER NOT NULL PRIMARY KEY, [Name] NVARCHAR(120));
CREATE TABLE [Album] (
    [AlbumId] INTEGER NOT NULL PRIMARY KEY, [Title] NVARCHAR(160) NOT NULL,
    [ArtistId] INTEGER NOT NULL REFERENCES [Artist] ([ArtistId]), [Cover] BLOB
);
CREATE TABLE [Track] (
    [TrackId] INTEGER NOT NULL PRIMARY KEY, [Name] NVARCHAR(200) NOT NULL,
    [AlbumId] INTEGER REFERENCES [Album] ([AlbumId]), [Composer] NVARCHAR(220),
    [Milliseconds] INTEGER NOT NULL, [Bytes] INTEGER, [UnitPrice] NUMERIC(10,2) NOT NULL,
    [row_version] INTEGER NOT NULL DEFAULT 1,
    [Seconds] REAL GENERATED ALWAYS AS ([Milliseconds] / 1000.0) VIRTUAL
);
CREATE INDEX [IX_TrackAlbum] ON [Track] ([AlbumId]);
CREATE TABLE [Playlist Track] (
    [PlaylistId] INTEGER NOT NULL, [TrackId] INTEGER NOT NULL REFERENCES [Track] ([TrackId]),
    [AddedOn] DATE, PRIMARY KEY ([PlaylistId], [TrackId])
) WITHOUT ROWID;
CREATE TABLE [Invoice] (
    [InvoiceId] INTEGER NOT NULL PRIMARY KEY, [InvoiceDate] DATETIME NOT NULL,
    [BillingCity] NVARCHAR(40), [Total] NUMERIC(10,2) NOT NULL
);
CREATE TABLE [Log] ([Line] TEXT);
CREATE VIEW [TrackList] AS
    SELECT t.[TrackId], t.[Name], a.[Title] FROM [Track] t JOIN [Album] a USING ([AlbumId]);

CREATE TEMPORARY TABLE numbers (value INTEGER PRIMARY KEY);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) INSERT INTO numbers SELECT i FROM n;
INSERT INTO [Artist] SELECT value, 'Artist ' || value FROM numbers WHERE value <= 40;
INSERT INTO [Album] SELECT value, 'Album "' || value || '"', value % 40 + 1, x'00ff10' FROM numbers WHERE value <= 120;
INSERT INTO [Track] ([TrackId], [Name], [AlbumId], [Composer], [Milliseconds], [Bytes], [UnitPrice])
SELECT value, 'Träck ' || value, value % 120 + 1, CASE WHEN value % 3 = 0 THEN NULL ELSE 'O''Hara' END,
       200000 + value * 37, value * 4096, 0.99 FROM numbers WHERE value <= 1500;
INSERT INTO [Playlist Track] SELECT value % 18 + 1, value, '2026-01-01' FROM numbers WHERE value <= 900;
INSERT INTO [Invoice]
SELECT value, datetime('2025-01-01', '+' || value || ' hours'), NULL, value % 20 + 0.99 FROM numbers WHERE value <= 412;
INSERT INTO [Log] VALUES ('a'), ('b');
