-- +goose Up
-- What the merchant sent, of a shipped order. The columns are empty before.
ALTER TABLE orders ADD COLUMN shipped_at BIGINT NULL;
ALTER TABLE orders ADD COLUMN carrier VARCHAR(64) NOT NULL DEFAULT '';
ALTER TABLE orders ADD COLUMN tracking_number VARCHAR(128) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE orders DROP COLUMN tracking_number;
ALTER TABLE orders DROP COLUMN carrier;
ALTER TABLE orders DROP COLUMN shipped_at;
