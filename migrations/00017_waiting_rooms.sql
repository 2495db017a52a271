-- +goose Up
-- How buyers are admitted to a sale: by its rate, or through its waiting room.
ALTER TABLE sales ADD COLUMN admission VARCHAR(16) NOT NULL DEFAULT 'rate';

-- What must survive the loss of Redis, for each sale with a waiting room. seed is secret until the
-- draw (hex). lease names the Redis master and the epoch of the sale that may hand out the numbers
-- up to granted; another one takes further numbers first, so that no number is handed out twice. joined, admitted, turns and
-- digest are those of a moment at most some seconds ago: numbers that were handed out, places that
-- were called, admissions that were not used (JSON), and the digest of those who joined before the
-- start. draw_size is -1 until the draw.
CREATE TABLE IF NOT EXISTS waiting_rooms (
    goods_id   BIGINT      NOT NULL,
    seed       VARCHAR(64) NOT NULL,
    lease      VARCHAR(64) NOT NULL,
    granted    BIGINT      NOT NULL,
    joined     BIGINT      NOT NULL,
    admitted   BIGINT      NOT NULL,
    turns      MEDIUMTEXT  NOT NULL,
    gaps       MEDIUMTEXT  NOT NULL,
    digest     VARCHAR(64) NOT NULL,
    draw_size  BIGINT      NOT NULL,
    PRIMARY KEY (goods_id)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
DROP TABLE IF EXISTS waiting_rooms;
ALTER TABLE sales DROP COLUMN admission;
