-- +goose Up
-- Merchants' cuts of the stock of an exposed sale, written before Redis is asked for the units and applied to the sale
-- when it gave them: a crash in between leaves a row that says what is to be finished. wanted is the whole change as
-- JSON, applied together with the cut. epoch is the one whose Redis is asked; it is renewed with the sale's.
CREATE TABLE IF NOT EXISTS stock_cuts (
    goods_id        BIGINT       NOT NULL,
    id              VARCHAR(36)  NOT NULL,
    epoch           BIGINT       NOT NULL,
    quantity        BIGINT       NOT NULL,
    wanted          TEXT         NOT NULL,
    actor_id        BIGINT       NOT NULL,
    actor_role      VARCHAR(16)  NOT NULL,
    idempotency_key VARCHAR(255) NOT NULL,
    state           VARCHAR(16)  NOT NULL,
    made_at         BIGINT       NOT NULL,
    PRIMARY KEY (goods_id, id),
    CONSTRAINT stock_cuts_quantity CHECK (quantity > 0),
    CONSTRAINT stock_cuts_state CHECK (state IN ('open', 'done', 'undone'))
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- What is under way, oldest first: a handful of rows.
CREATE INDEX stock_cuts_open ON stock_cuts (state, made_at);

-- +goose Down
DROP TABLE IF EXISTS stock_cuts;
