-- +goose Up
-- What an operator must know of a refund that fails. refund_since is the time of the first attempt;
-- the refunder stops some days after it: refund_at is NULL then, and the state stays refunding.
-- refund_tried_at is the time of the last attempt, refund_problem why the last one failed.
ALTER TABLE payments ADD COLUMN refund_since BIGINT NULL;
ALTER TABLE payments ADD COLUMN refund_tried_at BIGINT NULL;
ALTER TABLE payments ADD COLUMN refund_problem VARCHAR(255) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE payments DROP COLUMN refund_problem;
ALTER TABLE payments DROP COLUMN refund_tried_at;
ALTER TABLE payments DROP COLUMN refund_since;
