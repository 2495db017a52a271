-- +goose Up
-- Barriers that came through the queue: everything sent before one is committed. A rebuild waits for its own.
CREATE TABLE IF NOT EXISTS barriers (
    goods_id   BIGINT NOT NULL,
    epoch      BIGINT NOT NULL,
    token      BIGINT NOT NULL,
    reached_at BIGINT NOT NULL,
    PRIMARY KEY (goods_id, epoch, token)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
DROP TABLE IF EXISTS barriers;
