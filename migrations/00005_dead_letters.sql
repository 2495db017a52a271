-- +goose Up
-- Orders and messages that could not be written, with all data that a decision and a retry need.
-- The ids are UUIDv7, so the primary key lists them by age. goods_id is 0 and order_sn is empty if
-- the message does not contain them. body is the received message, byte for byte. It may be binary.
CREATE TABLE IF NOT EXISTS dead_letters (
    id            VARCHAR(36)  NOT NULL,
    goods_id      BIGINT       NOT NULL,
    order_sn      VARCHAR(64)  NOT NULL,
    reason        VARCHAR(32)  NOT NULL,
    attempts      BIGINT       NOT NULL,
    first_seen_at BIGINT       NOT NULL,
    origin        VARCHAR(255) NOT NULL,
    body          MEDIUMBLOB   NOT NULL,
    PRIMARY KEY (id)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
DROP TABLE IF EXISTS dead_letters;
