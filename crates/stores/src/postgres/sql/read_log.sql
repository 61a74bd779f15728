-- Primary key. A piece has at least one byte, so that $4 bytes are at most $4 pieces.
SELECT piece, attempt, at, data, stream FROM (
    SELECT piece, attempt, at, data, stream, sum(octet_length(data)) OVER (ORDER BY piece) AS total
    FROM (
        SELECT * FROM windlass.logs WHERE namespace = $1 AND id = $2 AND piece > $3 ORDER BY piece LIMIT $4
    ) pieces
) sums
WHERE total <= $4 OR total = octet_length(data)
ORDER BY piece
