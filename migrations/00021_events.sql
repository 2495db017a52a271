-- +goose Up
-- What happened to orders and sales, for merchants' programs. The transaction of the change writes the
-- row. One row holds the events of one type that a transaction made, so that a batch of 500 orders costs
-- one row: order_sns is a JSON array of their numbers, empty for an event of the sale. size is the
-- number of events. merchant_id is the sale's. occurred_at and ranking put the changes of one order and
-- of one sale in their order.
-- position numbers the row's last event among all events; NULL until the sequencer has placed the row.
CREATE TABLE IF NOT EXISTS events (
    goods_id    BIGINT      NOT NULL,
    id          VARCHAR(36) NOT NULL,
    merchant_id VARCHAR(64) NOT NULL,
    type        VARCHAR(32) NOT NULL,
    order_sns   MEDIUMTEXT  NOT NULL,
    size        BIGINT      NOT NULL,
    occurred_at BIGINT      NOT NULL,
    ranking     BIGINT      NOT NULL,
    position    BIGINT      NULL,
    PRIMARY KEY (goods_id, id)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- The sequencer reads the rows without a position in their order. Readers and the deletion of old
-- events page through the others.
CREATE INDEX events_in_order ON events (position, occurred_at, ranking);

-- A merchant's own events, by position.
CREATE INDEX events_of_merchant ON events (merchant_id, position);

-- The last position that was assigned, in one row with id 1. Its lock makes assignments take turns, so
-- that positions become visible in ascending order.
CREATE TABLE IF NOT EXISTS event_head (
    id       BIGINT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (id)
) /*! ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

-- +goose Down
DROP TABLE IF EXISTS event_head;
DROP TABLE IF EXISTS events;
