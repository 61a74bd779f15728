-- Below a lane's mark nothing is pending. While somebody's old snapshot keeps the entries of claimed jobs in jobs_claim, a
-- claim starts at the mark instead of stepping over all of them. `next` is where somebody means to move it; see marks.rs.
CREATE TABLE windlass.lane_marks (
    namespace text COLLATE "C" NOT NULL,
    lane uuid NOT NULL,
    priority integer NOT NULL,
    seq bigint NOT NULL,
    next_priority integer,
    next_seq bigint,
    -- Whose proposal it is: one that was taken back and made again by another is not the same.
    next_by uuid,
    PRIMARY KEY (namespace, lane)
) WITH (fillfactor = 50);
