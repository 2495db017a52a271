-- +goose Up
-- Barriers that a consumer received from the queue. When a barrier's row exists, all messages that
-- were published before it are committed. A rebuild waits for the row of its own barrier.
CREATE TABLE IF NOT EXISTS barriers (
    goods_id   BIGINT NOT NULL,
    epoch      BIGINT NOT NULL,
    token      BIGINT NOT NULL,
    reached_at BIGINT NOT NULL,
    PRIMARY KEY (goods_id, epoch, token)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
DROP TABLE IF EXISTS barriers;
