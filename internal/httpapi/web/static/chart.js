// A small SVG line chart of the last minute.
const svg = 'http://www.w3.org/2000/svg';
const length = 60;

/** A chart of one value per second. label(value, max) returns its text for screen readers. */
export class Spark {
  constructor(element, label) {
    this.element = element;
    this.label = label;
    this.values = [];
    element.setAttribute('viewBox', `1 0 ${length - 1} 36`);
    element.setAttribute('preserveAspectRatio', 'none');
    [this.area, this.line] = ['area', 'line'].map((name) => {
      const shape = document.createElementNS(svg, name === 'line' ? 'polyline' : 'polygon');
      shape.setAttribute('class', name);
      shape.setAttribute('vector-effect', 'non-scaling-stroke');
      element.append(shape);
      return shape;
    });
  }

  add(value) {
    this.values.push(value);
    if (this.values.length > length + 1) this.values.shift();
    const most = Math.max(...this.values, 1e-9);
    const start = length + 1 - this.values.length;
    const points = this.values.map((v, i) => `${start + i},${(34 - 31 * v / most).toFixed(1)}`);
    this.line.setAttribute('points', points.join(' '));
    this.area.setAttribute('points', `${start},36 ${points.join(' ')} ${length},36`);
    this.element.setAttribute('aria-label', this.label(value, most));
  }
}
