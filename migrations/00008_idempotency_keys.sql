-- +goose Up
-- The first answer to each request with an Idempotency-Key, by the caller. The transaction of the
-- change inserts the row, so that one of several concurrent requests makes the change.
-- body_hash is the SHA-256 of the request in hex. answer is the sale as JSON. It is empty while the
-- stock cut cut_id is open.
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

-- The cleanup of keys that are older than a day.
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (made_at);

-- +goose Down
DROP TABLE IF EXISTS idempotency_keys;
