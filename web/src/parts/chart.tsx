// Figures over time. Drawn on a canvas, and told as a table to those who cannot see it.
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { length } from "./text";

export type Series = { name: string; colour: string; values: (number | null)[] };
type Props = { label: string; times: number[]; series: Series[]; isTime?: boolean };

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function options({ series, isTime }: Props, width: number): uPlot.Options {
  const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") } };
  const value = (_: uPlot, raw: number | null) => (raw == null ? "–" : isTime ? length(raw) : String(raw));
  return {
    width,
    height: 190,
    cursor: { sync: { key: "overview" } },
    axes: [axis, { ...axis, size: 60, values: (_, ticks) => ticks.map((tick) => (isTime ? length(tick) : tick.toLocaleString())) }],
    series: [{}, ...series.map((one) => ({ label: one.name, stroke: css(one.colour), width: 1.5, value, points: { size: 4 } }))],
  };
}

export default function Chart(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const data = [props.times, ...props.series.map((one) => one.values)] as uPlot.AlignedData;
  const shape = props.series.map((one) => one.name).join();
  useEffect(() => {
    const element = box.current!;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(props, element.clientWidth), data, element);
    };
    draw();
    const sized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: 190 }));
    sized.observe(element);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      sized.disconnect();
      themed.disconnect();
      plot.current?.destroy();
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [props.times, props.series]);
  const sums = props.series.map((one) => `${one.name}: ${last(one, props.isTime)}`).join(", ");
  return <div ref={box} className="chart" role="img" aria-label={`${props.label}. Latest: ${sums}.`} />;
}

function last(series: Series, isTime?: boolean): string {
  const value = series.values.findLast((one) => one != null);
  return value == null ? "none" : isTime ? length(value) : String(value);
}
