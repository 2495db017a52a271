-- +goose Up
-- The longest sealed phone number and email address of a token are 12 characters of mark and key,
-- and base64 of the rest. The rest is 28 bytes of nonce and tag with 32 and 254 characters of up to
-- 4 bytes. SQLite does not enforce a column's length.
/*! ALTER TABLE orders MODIFY phone VARCHAR(1600) NOT NULL */;
/*! ALTER TABLE late_orders MODIFY phone VARCHAR(1600) NOT NULL */;

-- +goose Down
-- The longer type stays: rows may need it, and earlier releases read it.
SELECT 1;
