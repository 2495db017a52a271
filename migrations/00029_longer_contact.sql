-- +goose Up
-- A sealed phone number and email address of the longest that a token may have: 12 characters of mark and
-- key, and base64 of 28 bytes of nonce and tag with 32 and 254 characters of up to 4 bytes. SQLite does
-- not enforce a column's length.
/*! ALTER TABLE orders MODIFY phone VARCHAR(1600) NOT NULL */;
/*! ALTER TABLE late_orders MODIFY phone VARCHAR(1600) NOT NULL */;

-- +goose Down
-- The longer type stays: rows may need it, and earlier releases read it.
SELECT 1;
