-- +goose Up
-- Who changed which sale, when, from what to what: written in the transaction of the change itself, so that there is no
-- change without its row. was and became are JSON objects of the fields that differ. The ids are UUIDv7: the primary key
-- lists a sale's rows by age, also of a draft that is gone.
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
