-- +goose Up
-- The first answers to requests that bear an Idempotency-Key, by who asked: inserted in the transaction of the change,
-- so that of requests that come together one changes something. body_hash is the SHA-256 of the request in hex;
-- answer is the sale as JSON, empty while the stock cut named by cut_id is under way.
CREATE TABLE IF NOT EXISTS idempotency_keys (
    actor_id        BIGINT       NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,
    body_hash       VARCHAR(64)  NOT NULL,
    goods_id        BIGINT       NOT NULL,
    cut_id          VARCHAR(36)  NOT NULL,
    answer          TEXT         NOT NULL,
    made_at         BIGINT       NOT NULL,
    PRIMARY KEY (actor_id, idempotency_key)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- The sweep of what is older than a day.
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (made_at);

-- +goose Down
DROP TABLE IF EXISTS idempotency_keys;
