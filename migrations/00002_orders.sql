-- +goose Up
-- One row for each order number, also for those that could not be written as they should (failed).
-- The primary key is the uniqueness on which "written once" stands; its first column is the shard's.
-- epoch is the one that promised the order. A failed order holds nothing, so its quantity may be the
-- malformed one of its message.
CREATE TABLE IF NOT EXISTS orders (
    goods_id       BIGINT       NOT NULL,
    order_sn       VARCHAR(64)  NOT NULL,
    buyer_id       BIGINT       NOT NULL,
    epoch          BIGINT       NOT NULL,
    quantity       BIGINT       NOT NULL,
    amount         BIGINT       NOT NULL,
    status         VARCHAR(16)  NOT NULL,
    failure_reason VARCHAR(32)  NOT NULL,
    name           VARCHAR(255) NOT NULL,
    phone          VARCHAR(64)  NOT NULL,
    created_at     BIGINT       NOT NULL,
    pay_by         BIGINT       NULL,
    paid_at        BIGINT       NULL,
    closed_at      BIGINT       NULL,
    PRIMARY KEY (goods_id, order_sn),
    CONSTRAINT orders_quantity CHECK (quantity > 0 OR status = 'failed'),
    CONSTRAINT orders_status CHECK (status IN ('created', 'paid', 'cancelled', 'expired', 'failed'))
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- A buyer's own orders, newest first (order numbers grow with time).
CREATE INDEX orders_of_buyer ON orders (buyer_id, order_sn);

-- Expiry: the created orders of a goods by the time their payment is due. The ledger: the sum of the active
-- orders' quantities out of the index alone, for which quantity is in it.
CREATE INDEX orders_due ON orders (goods_id, status, pay_by, quantity);

-- +goose Down
DROP TABLE IF EXISTS orders;
