-- Whether this user has the privilege to create tables in this database, or has a role that may have it.
-- Database names in grants are patterns.
-- Lock: none. Index: the catalog's own.
SELECT EXISTS (
    SELECT 1 FROM information_schema.user_privileges
    WHERE privilege_type = 'CREATE'
        AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')
) OR EXISTS (
    SELECT 1 FROM information_schema.schema_privileges
    WHERE privilege_type = 'CREATE' AND DATABASE() LIKE table_schema
        AND grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')
) OR COALESCE(CURRENT_ROLE(), 'NONE') <> 'NONE'
