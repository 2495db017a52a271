-- +goose Up
-- When an operator recorded that the money of a payment was returned in another way. NULL: the refund
-- was the provider's. A late report that the provider's refund failed changes no settled payment.
ALTER TABLE payments ADD COLUMN settled_at BIGINT NULL;

-- +goose Down
ALTER TABLE payments DROP COLUMN settled_at;
