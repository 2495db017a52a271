-- +goose Up
-- Late orders that are parked: their epoch is over, and no open gate of the present epoch has taken
-- units for them. The next epoch begins by writing them, or the open one adopts them. The row ends
-- when the order has its row in orders. amount is in the currency's smallest unit.
CREATE TABLE IF NOT EXISTS late_orders (
    goods_id  BIGINT       NOT NULL,
    order_sn  VARCHAR(64)  NOT NULL,
    buyer_id  BIGINT       NOT NULL,
    epoch     BIGINT       NOT NULL,
    quantity  BIGINT       NOT NULL,
    amount    BIGINT       NOT NULL,
    name      VARCHAR(255) NOT NULL,
    phone     VARCHAR(255) NOT NULL,
    parked_at BIGINT       NOT NULL,
    PRIMARY KEY (goods_id, order_sn),
    CONSTRAINT late_orders_quantity CHECK (quantity > 0)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
-- The table must be empty, because the release before does not write its orders.
DROP TABLE IF EXISTS late_orders;
