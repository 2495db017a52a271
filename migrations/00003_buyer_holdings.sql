-- +goose Up
-- How many units of a goods each buyer's active orders hold. The transactions that change orders
-- change this table too, so the database enforces the limit per buyer without relying on Redis.
-- The primary key serves every query.
CREATE TABLE IF NOT EXISTS buyer_holdings (
    goods_id BIGINT NOT NULL,
    buyer_id BIGINT NOT NULL,
    held     BIGINT NOT NULL,
    PRIMARY KEY (goods_id, buyer_id),
    CONSTRAINT buyer_holdings_held CHECK (held >= 0)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
DROP TABLE IF EXISTS buyer_holdings;
