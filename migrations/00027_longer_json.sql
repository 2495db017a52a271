-- +goose Up
-- Changes and answers as JSON may be longer than the 65,535 bytes of TEXT: a sale's metadata is a
-- JSON text within them, so its characters are escaped twice. SQLite's TEXT has no such bound.
/*! ALTER TABLE sale_audit MODIFY was MEDIUMTEXT NOT NULL, MODIFY became MEDIUMTEXT NOT NULL */;
/*! ALTER TABLE idempotency_keys MODIFY answer MEDIUMTEXT NOT NULL */;
/*! ALTER TABLE stock_cuts MODIFY wanted MEDIUMTEXT NOT NULL */;

-- +goose Down
-- The longer types stay: rows may need them, and earlier releases read them.
SELECT 1;
