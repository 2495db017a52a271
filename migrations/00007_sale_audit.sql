-- +goose Up
-- The audit log of sales: actor, time, old values and new values. The transaction of a change
-- writes the row, so that every change has one. was and became are JSON objects of the fields that
-- differ. The ids are UUIDv7, so the primary key lists a sale's rows by age. The rows of a deleted
-- draft remain.
CREATE TABLE IF NOT EXISTS sale_audit (
    goods_id   BIGINT      NOT NULL,
    id         VARCHAR(36) NOT NULL,
    actor_id   BIGINT      NOT NULL,
    actor_role VARCHAR(16) NOT NULL,
    action     VARCHAR(16) NOT NULL,
    was        TEXT        NOT NULL,
    became     TEXT        NOT NULL,
    made_at    BIGINT      NOT NULL,
    PRIMARY KEY (goods_id, id)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
DROP TABLE IF EXISTS sale_audit;
