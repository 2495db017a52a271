-- +goose Up
-- How the merchant sent an order; empty before. address is where it goes, encrypted, and NULL until
-- the buyer enters it.
ALTER TABLE orders ADD COLUMN shipped_at BIGINT NULL;
ALTER TABLE orders ADD COLUMN carrier VARCHAR(64) NOT NULL DEFAULT '';
ALTER TABLE orders ADD COLUMN tracking_number VARCHAR(128) NOT NULL DEFAULT '';
ALTER TABLE orders ADD COLUMN address TEXT NULL;

-- +goose Down
ALTER TABLE orders DROP COLUMN address;
ALTER TABLE orders DROP COLUMN tracking_number;
ALTER TABLE orders DROP COLUMN carrier;
ALTER TABLE orders DROP COLUMN shipped_at;
