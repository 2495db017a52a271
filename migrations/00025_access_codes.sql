-- +goose Up
-- Whether buyers of a sale need an access code: none, shared or single.
ALTER TABLE sales ADD COLUMN access_code VARCHAR(8) NOT NULL DEFAULT 'none';

-- The single codes that buyers have presented, and whose they are since then. The primary key keeps
-- a code from a second buyer. code is the number in the code, without its MAC: a code that another
-- secret signs again is the same code. Rows stay as long as the orders of their sale.
CREATE TABLE IF NOT EXISTS code_claims (
    goods_id   BIGINT      NOT NULL,
    code       BIGINT      NOT NULL,
    buyer_id   VARCHAR(64) NOT NULL,
    claimed_at BIGINT      NOT NULL,
    PRIMARY KEY (goods_id, code)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
DROP TABLE IF EXISTS code_claims;
ALTER TABLE sales DROP COLUMN access_code;
