// Lists that are read page by page, as plain tables.
import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get, type Page } from "../api/client";
import { Empty, Fault } from "./basics";

type Column<T> = { name: string; cell: (row: T) => ReactNode; opt?: boolean };
type Props<T> = {
  path: string;
  query?: Record<string, string | undefined>;
  meta?: Record<string, unknown>;
  columns: Column<T>[];
  id: (row: T) => string;
  empty: ReactNode;
  label: string;
};

export function Pages<T>({ path, query = {}, meta, columns, id, empty, label }: Props<T>) {
  const found = useInfiniteQuery({
    queryKey: ["pages", path, query],
    queryFn: ({ pageParam, signal }) => get<Page<T>>(path, { ...query, limit: 100, cursor: pageParam }, signal),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
    meta,
  });
  const rows = found.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <>
      <Fault error={found.error} />
      {found.isPending && <p className="empty">Loading…</p>}
      {found.isSuccess && rows.length === 0 && <Empty>{empty}</Empty>}
      {rows.length > 0 && (
        <div className="wide-table" tabIndex={0} role="region" aria-label={label}>
          <table>
            <thead>
              <tr>
                {columns.map((column) => (
                  <th key={column.name} scope="col" className={column.opt ? "opt" : ""}>
                    {column.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={id(row)}>
                  {columns.map((column) => (
                    <td key={column.name} className={column.opt ? "opt" : ""}>
                      {column.cell(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {found.hasNextPage && (
        <button onClick={() => void found.fetchNextPage()} disabled={found.isFetchingNextPage}>
          Show more
        </button>
      )}
    </>
  );
}
