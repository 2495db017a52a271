-- +goose Up
-- One row for each order number, including orders that could not be written (status failed).
-- The primary key guarantees that an order is written once. Its first column selects the shard.
-- epoch is the epoch of the reservation. A failed order holds no units, so its quantity may be the
-- invalid quantity of its message.
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

-- A buyer's own orders, newest first. Order numbers grow with time.
CREATE INDEX orders_of_buyer ON orders (buyer_id, order_sn);

-- The expirer reads the created orders of a goods by the time when their payment is due.
-- The ledger sums the quantities of active orders. The index contains quantity, so that the sum
-- reads no rows.
CREATE INDEX orders_due ON orders (goods_id, status, pay_by, quantity);

-- +goose Down
DROP TABLE IF EXISTS orders;
