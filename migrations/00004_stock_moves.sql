-- +goose Up
-- Stock moves: units that go back on sale (cancelled, expired, failed) and merchants' changes of
-- the stock. The transaction that changes the order or the sale writes the row. The releaser
-- applies the row to Redis once, by its id. given_at is NULL until then.
CREATE TABLE IF NOT EXISTS stock_moves (
    goods_id BIGINT      NOT NULL,
    id       VARCHAR(36) NOT NULL,
    epoch    BIGINT      NOT NULL,
    buyer_id BIGINT      NOT NULL,
    order_sn VARCHAR(64) NOT NULL,
    quantity BIGINT      NOT NULL,
    kind     VARCHAR(16) NOT NULL,
    made_at  BIGINT      NOT NULL,
    given_at BIGINT      NULL,
    PRIMARY KEY (goods_id, id),
    CONSTRAINT stock_moves_kind CHECK (kind IN ('cancel', 'expire', 'fail', 'delta'))
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- Stock moves that Redis does not have yet, oldest first: a few rows at one end of the index.
CREATE INDEX stock_moves_not_given ON stock_moves (given_at, made_at);

-- +goose Down
DROP TABLE IF EXISTS stock_moves;
