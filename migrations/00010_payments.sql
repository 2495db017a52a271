-- +goose Up
-- Money that a provider took for orders, by the provider's own number of it: the key is why a callback that comes twice
-- counts once. What could not be kept is refunding until the provider has given it back, and never both. kept is 1 or NULL:
-- with it the unique index below lets an order keep one payment, whatever a program believes. refund_at is when giving it
-- back is tried next; attempts counts the tries, and whoever raises it has the next one.
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

-- One payment kept for each order; also the payments of an order.
CREATE UNIQUE INDEX payments_one_kept ON payments (goods_id, order_sn, kept);

-- What is to be given back, the longest due first: a handful of rows.
CREATE INDEX payments_to_refund ON payments (state, refund_at);

-- Phone numbers are kept sealed, which is longer than they are. SQLite counts no characters and needs no change.
/*! ALTER TABLE orders MODIFY phone VARCHAR(255) NOT NULL */;

-- +goose Down
-- With sealed numbers in it the column stays as wide as it is: MySQL refuses to cut them.
/*! ALTER TABLE orders MODIFY phone VARCHAR(64) NOT NULL */;
DROP TABLE IF EXISTS payments;
