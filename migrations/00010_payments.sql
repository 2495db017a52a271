-- +goose Up
-- Payments for orders, by the provider's own payment number. Because it is the primary key, a
-- repeated callback counts once. A payment is kept or refunded, never both. It is refunding until
-- the provider has returned the money. kept is 1 or NULL. The unique index on it allows one kept
-- payment for each order, even if a program has a bug. refund_at is the time of the next refund
-- attempt. attempts counts them. A refunder claims the next attempt by incrementing it.
CREATE TABLE IF NOT EXISTS payments (
    payment_id  VARCHAR(64) NOT NULL,
    goods_id    BIGINT      NOT NULL,
    order_sn    VARCHAR(64) NOT NULL,
    amount      BIGINT      NOT NULL,
    state       VARCHAR(16) NOT NULL,
    reason      VARCHAR(16) NOT NULL,
    kept        BIGINT      NULL,
    attempts    BIGINT      NOT NULL,
    received_at BIGINT      NOT NULL,
    refund_at   BIGINT      NULL,
    refunded_at BIGINT      NULL,
    PRIMARY KEY (payment_id),
    CONSTRAINT payments_amount CHECK (amount >= 0),
    CONSTRAINT payments_state CHECK (state IN ('kept', 'refunding', 'refunded')),
    CONSTRAINT payments_kept CHECK (state = 'kept' AND kept IS NOT NULL OR state <> 'kept' AND kept IS NULL)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- One kept payment for each order. The index also serves the list of an order's payments.
CREATE UNIQUE INDEX payments_one_kept ON payments (goods_id, order_sn, kept);

-- Payments to refund, the longest due first: a few rows.
CREATE INDEX payments_to_refund ON payments (state, refund_at);

-- A sealed phone number is longer than the number. SQLite does not enforce a column's length, so
-- it needs no change.
/*! ALTER TABLE orders MODIFY phone VARCHAR(255) NOT NULL */;

-- +goose Down
-- MySQL refuses this change while the column contains sealed numbers, because they are too long.
/*! ALTER TABLE orders MODIFY phone VARCHAR(64) NOT NULL */;
DROP TABLE IF EXISTS payments;
