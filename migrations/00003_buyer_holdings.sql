-- +goose Up
-- How many units of a goods each buyer's active orders hold, changed in the transactions that change the orders:
-- the buyer's limit is kept by the database, not by Redis' word. The primary key serves every use.
CREATE TABLE IF NOT EXISTS buyer_holdings (
    goods_id BIGINT NOT NULL,
    buyer_id BIGINT NOT NULL,
    held     BIGINT NOT NULL,
    PRIMARY KEY (goods_id, buyer_id),
    CONSTRAINT buyer_holdings_held CHECK (held >= 0)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
DROP TABLE IF EXISTS buyer_holdings;
